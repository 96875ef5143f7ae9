// Package attack attacks the programs of the chart. Each program has the memory limit that the chart gives it, and the
// kernel kills a program that takes more. Honest clients send requests all the time, and each request must be answered.
//
// The tests need root and memory cgroups, and fail without them. They print BENCH lines: the CPU time of the program
// for each request of an attack, the program's largest memory, and the honest clients' latencies with and without the
// attack.
package attack
