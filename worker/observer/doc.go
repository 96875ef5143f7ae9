// Package observer compares, once a minute, the existing objects on the consumer cluster and on the providers with
// the bookings of the entities. An entity is the workflow of a node group or of a provider. The observer notifies
// each entity whose bookings differ from the objects. The observer is a level-triggered loop: a failed round sends
// nothing, and the next round reads everything again. The observer runs in the worker that holds the hub's Lease.
//
// A round reads the entities by their ids, lists the objects, and checks the providers in use. Package comparison
// then finds the differences. The round sends the differences by signals. Each signal contains the revision of the
// entity that the round has read. A round skips entities that it could not read. It never compares the times of two
// machines' clocks. The rules and their reasons are in protocol.md, under "The observer".
package observer
