// Package observer compares, once a minute, the existing objects on the consumer cluster and on the providers with the
// bookings of the node groups and providers, and notifies each entity that differs. It is a level-triggered loop: a
// failed round sends nothing, and the next round reads everything again. It runs in the one worker that holds the hub's
// Lease.
//
// A round reads the entities by their ids, lists the objects, checks the providers in use, decides with package
// comparison, and signals with the revision that it has read. Unread entities are not judged. No time of another
// machine is compared with this machine's: the rules and their reasons are in protocol.md, under "The
// observer".
package observer
