// Package x has broken text.
package x

// Grant is what the provider gives.
var Grant = "what the"
