// Package attack tests how the programs of the chart behave under attack. Each program has the memory limit that the
// chart sets, and the kernel kills a program that exceeds this limit. During the attack, honest clients also send
// requests, and each of these requests must be answered.
//
// The tests need root and memory cgroups, and fail without them. They print BENCH lines with three results: the CPU
// time that the program uses for each request of an attack, the program's maximum memory, and the latencies of the
// honest clients with and without the attack.
package attack
