// Package language tests the style that Vale checks the repository with: CONTRIBUTING.md, Language.
package language
