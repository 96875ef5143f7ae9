// Package nodes holds the operations of backends on a Node, its pods and their own objects that need only an API
// server. They work for a Node of any origin.
package nodes
