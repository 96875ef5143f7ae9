// Package observer compares, once a minute, what exists on the consumer cluster and on the providers with what the node
// groups and providers have booked, and tells each entity that differs. It is a level-triggered loop: a round that
// fails says nothing, and the next one begins anew. It runs in the one worker that holds the hub's Lease.
//
// A round reads the entities by their ids, lists what exists, looks at the providers in use, judges with package
// comparison, and signals with the revision that it has read. What could not be read is not judged. No time of another
// machine is compared with this one's: the rules and their reasons are in docs/architecture.md, under "The observer".
package observer
