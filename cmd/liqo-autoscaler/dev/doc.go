// Package dev runs everything on one machine, with simulated Liqo.
package dev
