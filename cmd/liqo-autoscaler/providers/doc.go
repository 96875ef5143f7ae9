// Package providers implements the commands for providers: their offers, and the access that they give.
package providers
