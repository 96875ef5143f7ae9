// Package nodes contains the operations of backends that need only an API server: operations on a Node, its pods and
// the backends' own objects. They work for a Node of any origin.
package nodes
