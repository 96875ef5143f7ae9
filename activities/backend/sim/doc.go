// Package sim is the simulated backend: clusters that exist in one file.
//
// The file is the world: a consumer, its providers, and all objects on both sides. Each line, in JSON, is one change:
// the objects that it has set or removed. Any number of processes may open the file. Each keeps the world in memory and
// reads the changes of the other processes. The world survives the end of all processes, even by kill -9: a line is
// added under a lock, a line without its end is ignored and overwritten, and from time to time the file is replaced by
// a file whose first line has all objects.
//
// Nothing runs in the background except one periodic read of the file for all waiting calls. A stage is reached when a
// waiting call checks it, its delay has passed and no knob delays it. Only verbs cause changes, so a peering whose
// process was killed stays half made, as it would on a real cluster. A deleted Node is registered again by its virtual
// kubelet during a Watch or a List.
//
// New makes a backend.Backend on a World. Credentials are a file (fleet.Credentials.KubeconfigFile) with one line:
//
//	simulatedProvider: <id>
//
// World.Kubeconfig writes this line. Credentials can also be a reference to a Secret (fleet.Credentials.SecretRef). The
// Secret itself need not exist: its name is the provider's id, and its namespace and key have no meaning. Therefore
// offers from the network, which never name files, work as well.
//
// The demo and the tests use the methods of World: these methods add pods, delays and faults to the world, remove
// objects as a user would, and count objects.
//
// The simulation covers the behaviour of Liqo 1.2 that CA and the workflows can see: the node's labels and taint;
// slices that are granted as requested while the capacity lasts (plain Liqo grants any request); a mark before the
// stamp; a Node that becomes Unknown while its provider is unreachable; a slice that cannot be removed before the
// provider has released it.
package sim
