// Package mirror shows the node groups and the offers of one hub in `kubectl get`, as objects of two small CRDs. The
// objects are for people and for tools of the cluster. No part of liqo-autoscaler reads them to decide anything, so a
// changed or deleted object has no effect on nodes.
//
// The worker that leads the hub writes the objects. The observer passes the newest groups to the mirror, and the
// publisher of the market passes the newest offers. One goroutine compares this data with the objects and writes the
// differences at a limited rate. A failure of the mirror never delays the observer or the publisher.
package mirror
