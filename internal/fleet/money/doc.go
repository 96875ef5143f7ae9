// Package money counts the costs of nodes. From rates and times alone it computes the costs by day, month and provider,
// the amount that may still be spent, and the limits that have been reached. It is pure and knows neither groups nor
// offers. Sums use millionths and whole seconds, so that they do not depend on how often they are added up.
package money
