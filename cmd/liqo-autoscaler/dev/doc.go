// Package dev runs all components on one machine, with simulated Liqo.
package dev
