// Package providers is the commands about providers: their offers, and the access that they give.
package providers
