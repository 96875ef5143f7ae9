// Package nodewatch keeps an eye on our nodes between the steps that make and remove them.
//
// It does two things with what backend.Watcher tells: it has the instance id put back on a Node that lost it (somebody
// deleted the Node, and its kubelet registered it anew; left alone, the Cluster Autoscaler would delete it after its
// max-node-provision-time although it is Ready), and it tells each instance's node group what changed: registered, not
// ready, lost. Both only hasten what the group finds out by itself when it compares its instances with what exists, so
// nothing is kept here across a restart, and any number of workers may do it at once.
package nodewatch
