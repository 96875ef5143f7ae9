// Package sim is the simulated backend: clusters that exist in one file.
//
// The file is the world: a consumer, its providers, and everything on both sides. Each line, in JSON, is one change:
// the objects it has set or removed. Any number of processes may have it open; each keeps the world in memory and reads
// what the others add. The world outlives all of them, kill -9 included: a line is added under a lock, one without its
// end is ignored and written over, and now and then the file is replaced by one whose first line has all there is.
// Nothing runs in the background but one look at the file for all who wait: a stage is reached when its delay has
// passed and no knob holds it, and whoever waits for it looks. What a verb has not yet asked for does not happen, so a
// peering whose maker was killed stays half made, as it would. A Node that somebody deleted is registered again by its
// virtual kubelet when a Watch or a List looks.
//
// New makes a backend.Backend on a World. Credentials are a file (fleet.Credentials.KubeconfigFile) with one line:
//
//	simulatedProvider: <id>
//
// which World.Kubeconfig writes, or a Secret (fleet.Credentials.SecretRef), of which there is only the reference: its
// name is the provider's id, its namespace and key mean nothing. So offers that came over the network, which never name
// files, work as well.
//
// The methods of World are for the demo and for tests: they put pods, delays and faults into the world, remove things
// by hand, and count what is in it.
//
// It simulates what CA and the workflows can see of Liqo 1.2: the node's labels and taint, slices that are granted as
// asked while the capacity lasts (plain Liqo grants anything), a mark before the stamp, a Node that turns Unknown while
// its provider is unreachable, a slice that cannot go before the provider has let go of it.
package sim
