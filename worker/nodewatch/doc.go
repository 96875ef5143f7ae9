// Package nodewatch keeps an eye on our nodes between the steps that make and remove them.
//
// It does four things with what backend.Watcher tells. One of our Nodes that somebody deleted is called back at once:
// by itself its kubelet would notice within a minute, and the pods of a missing Node are collected before. A Node that
// came back, or was never stamped, has the instance id put on it, once Kubernetes has taken the taints of its beginning
// off: without, the Cluster Autoscaler would delete it after its max-node-provision-time although it is Ready. And each
// instance's node group is told what changed: registered, not ready, lost. These only hasten what kubelets and groups
// find out by themselves. The fourth is for people: a Node that is not as the Cluster Autoscaler was told is logged,
// counted and shown, and nothing is decided by it. Nothing is kept here across a restart, and any number of workers may
// do it all at once.
package nodewatch
