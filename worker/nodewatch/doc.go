// Package nodewatch watches our nodes between the steps that make and remove them.
//
// It does four things with the reports of backend.Watcher:
//
//   - When a user deletes one of our Nodes, nodewatch makes the virtual kubelet register the Node again immediately.
//     Otherwise the kubelet needs up to a minute, and Kubernetes deletes the pods of a missing Node earlier.
//   - It stamps a Node that was registered again, or was never stamped: it writes the instance id on the Node, when
//     Kubernetes has removed the Node's first taints. Without the id, Cluster Autoscaler would delete the instance
//     after its max-node-provision-time although the Node is Ready.
//   - It sends each change to the instance's node group: registered, not ready, lost.
//   - It logs, counts and shows a Node that differs from the template that Cluster Autoscaler received. This is
//     informational only.
//
// The first three actions only speed up results that kubelets and groups also reach without nodewatch. Nodewatch saves
// nothing across a restart, and any number of workers may run it concurrently.
package nodewatch
