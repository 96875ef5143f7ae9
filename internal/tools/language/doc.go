// Package language tests the rules with which Vale checks the repository's language: see CONTRIBUTING.md, Language.
package language
