// Package pair is the command setup: it gives a consumer access to a provider, stores the offer as a Secret of the
// consumer, and writes the values of the two charts.
package pair
