// Package operate implements the commands for the operators of a hub.
package operate
