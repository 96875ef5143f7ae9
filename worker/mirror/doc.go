// Package mirror shows the node groups and the offers of one hub in `kubectl get`, as objects of two small CRDs. The
// objects are for people and for tools of the cluster. No part of liqo-autoscaler reads them to decide anything: a
// lost, changed or missing object has no effect on nodes.
//
// The worker that leads the hub writes the objects. The observer and the publisher of the market replace the newest
// data, and one goroutine compares the data with the objects and writes the differences, slowly. A failure of the
// mirror never delays them.
package mirror
