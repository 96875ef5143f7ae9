// Package sim is the simulated backend: clusters that exist in one file.
//
// The file is the world: a consumer, its providers, and all objects on both sides. Each line, in JSON, is one change:
// the objects that it has set or removed. Any number of processes may open the file. Each keeps the world in memory and
// reads the changes of the other processes. The world survives the end of all processes, even by kill -9: a line is
// added under a lock, a line without its end is ignored and overwritten, and from time to time the file is replaced by
// a file whose first line has all objects.
//
// Nothing runs in the background except one periodic read of the file for all waiting calls. A stage is reached when
// its delay has passed and no knob holds it, and a waiting call checks it. Only verbs cause changes, so a peering whose
// maker was killed stays half made, as it would on a real cluster. A deleted Node is registered again by its virtual
// kubelet during a Watch or a List.
//
// New makes a backend.Backend on a World. Credentials are a file (fleet.Credentials.KubeconfigFile) with one line:
//
//	simulatedProvider: <id>
//
// World.Kubeconfig writes this line. Credentials can also be a Secret (fleet.Credentials.SecretRef), of which only the
// reference exists: its name is the provider's id, and its namespace and key have no meaning. So offers from the
// network, which never name files, work as well.
//
// The methods of World serve the demo and tests: they put pods, delays and faults into the world, remove objects by
// hand, and count objects.
//
// The simulation covers the behaviour of Liqo 1.2 that CA and the workflows can see: the node's labels and taint;
// slices that are granted as requested while the capacity lasts (plain Liqo grants any request); a mark before the
// stamp; a Node that turns Unknown while its provider is unreachable; a slice that cannot be removed before the
// provider has released it.
package sim
