// Package money counts what nodes cost. It answers what they came to, by day, month and provider, what may still be
// spent, and which limits have been reached, from rates and times alone.
// It is pure and knows neither groups nor offers; sums are in millionths and whole seconds, so that they come to the
// same however often they are added up.
package money
