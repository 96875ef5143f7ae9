// Package nodewatch watches our nodes between the steps that make and remove them.
//
// It does four things with the reports of backend.Watcher:
//
//   - When a user deletes one of our Nodes, nodewatch makes its kubelet register it again immediately. On its own the
//     kubelet would notice within a minute, and Kubernetes collects the pods of a missing Node earlier.
//   - It puts the instance id on a Node that was registered again, or was never stamped, once Kubernetes has removed
//     the Node's first taints. Without the id, Cluster Autoscaler would delete the instance after its
//     max-node-provision-time although the Node is Ready.
//   - It sends each change to the instance's node group: registered, not ready, lost.
//   - It logs, counts and shows a Node that differs from the template that Cluster Autoscaler received. This is
//     informational only.
//
// The first three only speed up results that kubelets and groups reach on their own. Nothing is kept across a restart,
// and any number of workers may run nodewatch concurrently.
package nodewatch
