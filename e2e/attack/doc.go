// Package attack attacks the programs of the chart. Each program has the memory limit of the chart, and the kernel
// kills a program that exceeds it. Honest clients send requests all the time, and each of their requests must be
// answered.
//
// The tests need root and memory cgroups, and fail without them. They print BENCH lines with the CPU time that the
// program uses for each request of an attack, the program's largest memory, and the latencies of the honest clients
// with and without the attack.
package attack
