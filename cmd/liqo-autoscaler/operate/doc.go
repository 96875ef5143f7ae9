// Package operate implements the commands for operators of a hub.
package operate
