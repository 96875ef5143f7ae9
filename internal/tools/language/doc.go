// Package language tests the rules with which Vale checks the repository's language: see `make language` in
// CONTRIBUTING.md.
package language
