// Package explain says why a pending pod gets no node, and what became of an instance. It decides by what others have
// read, and does no I/O.
package explain
