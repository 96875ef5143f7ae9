// Package operate is the commands of those who operate a hub.
package operate
