// Package providers implements the commands that concern providers: their offers, and the access that they give to
// consumers.
package providers
