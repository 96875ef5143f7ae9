// Package sim is the simulated backend: clusters that exist in one file.
//
// The file is the world: a consumer, its providers, and all objects on these clusters. Each line of the file
// describes one change in JSON: the objects that the change has set or removed. Any number of processes may open the
// file. Each process keeps the world in memory and reads the changes of the other processes. The world survives the
// end of all processes, even by kill -9: a process adds a line under a lock, and the next writer overwrites an
// incomplete last line. From time to time a writer replaces the file by a new one whose first line contains all
// objects.
//
// Nothing runs in the background except one periodic read of the file for all waiting calls. A waiting call checks
// its stage repeatedly. The stage is reached once its delay has passed, unless a fault of the provider (Knobs)
// prevents it. Only verbs cause changes. So a peering stays half made when its process is killed, as on a real
// cluster. A deleted Node is registered again by its virtual kubelet during a Watch or a List.
//
// New makes a backend.Backend on a World. Credentials are a file (fleet.Credentials.KubeconfigFile) with one line:
//
//	simulatedProvider: <id>
//
// World.Kubeconfig writes this line. Credentials can also be a reference to a Secret (fleet.Credentials.SecretRef).
// The Secret itself need not exist: its name is the provider's id, and its namespace and key have no meaning.
// Therefore offers from a discovery server work as well, although such offers never name files.
//
// The demo and the tests use the methods of World: these methods add pods, delays and faults to the world, remove
// objects as a user would, and count objects.
//
// The simulation covers the behaviour of Liqo 1.2 that CA and the workflows can see. A Node has the same labels and
// taint. A provider grants a slice as requested while it has free capacity (Liqo itself grants any request). The
// virtual node is marked before the Node is stamped. A Node becomes Unknown while its provider is unreachable. A
// slice cannot be removed before its provider has released it.
package sim
