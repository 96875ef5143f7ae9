// Package workflows is the durable part: what Cluster Autoscaler asked for, where each instance is, and who is at
// work on it. It is deterministic; everything that touches the world is an activity. The decisions are not here but in
// pure packages, fleet for groups, driver and provider for the others: each workflow receives, calls Step, and executes
// what Step decided.
//
// # Who signals whom
//
// Two kinds of entity stay and only book: a NodeGroup per group, and a Provider per provider cluster, which closes
// after a day without use. Everything else runs for seconds or minutes, what takes back as long as a provider is away.
// Entities start the others by an activity, never as children, and all that goes between workflows is a signal that an
// activity sends. Views, facts and requests for holds share signals in the process's mailbox (client.Messages).
//
//	gRPC server ──updates──▶ nodegroup/<group> ◀──facts── watchers of nodes
//	            ◀──memo────      │       ▲    ◀──retry── operators
//	                      starts │       │ views: before each acquire, and at the end
//	                      orders ▼       │
//	             scale-out/<name>, scale-in/<name>             undo/<name>-<attempt>
//	                             │       ▲                               │
//	              acquire, broken│       │ answers                       │ release
//	                      release▼       │                               ▼
//	                        provider/<id> ◀────────report──── peering/<id>, unpeering/<id>
//	                             └─────────starts, cancels───────▶
//
//	             compare (every minute) ──differences──▶ nodegroup/<group>, provider/<id>
//
// # One pending pod
//
//	Cluster Autoscaler   nodegroup/std     scale-out/std-t0-1     provider/milan     peering/milan     Liqo
//	 IncreaseSize ──grow──▶ Pending
//	 ◀──answer (10 ms)──┤
//	                        ├──start─────▶ Discover (offers)
//	                        │              Select (the cheapest that fits)
//	                        ◀──view: Peering, attempt 1, milan──┤
//	                        │              ├──acquire──────────▶ waiting
//	                        │              │                    ├──start────────▶ Establish ───────▶ peered
//	                        │              │                    ◀──report: done──┤
//	                        │              ◀──answer: granted───┤
//	                        │              Join ───────────────────────────────────────────────────▶ slice, VirtualNode,
//	                        │              ◀─────────────────────────────────────────────────────── Node: Ready, stamped
//	                        ◀──view: Ready, final──┤
//	 Refresh ──reads memo──▶ Ready
//
// Scale-in is the way back: DeleteNodes marks the instance as leaving in the same update that answers,
// scale-in/<name> runs Drain and Return, tells Released and releases the hold; after the last hold has lingered,
// unpeering/<id> removes the peering, if it is ours and nobody uses it.
//
// # The rules
//
// One writer. While a driver runs it alone applies the table to its instance, and tells views; while none runs the
// group does, and what it finds after a recovery or a driver's loss sets the phase (fleet/results.go). A view has the
// generation of its driver (epoch, count of starts) and a sequence: a driver of an older generation is told to stop.
// Only the group starts undo: on the view that names the next attempt or on a last one, and for what a recovery, a
// replaced driver or the observer finds left behind.
//
// Commands. What an entity wants done outside is part of its state until its result has come (fleet.Commands), so
// nothing is lost at continue-as-new, and every command may run twice. A batch answers for each target by itself.
//
// The memo. An entity publishes its snapshot at most once a task, compressed above 8 KiB (memo.go). The server reads it
// without a worker. Updates return the position that the group has reached; the memo of the same task shows it.
//
// Lanes. Each hub has four task queues (names.go), each with a worker of its own in every worker process: entities,
// drivers, making (Establish, Join), removing (Drain, Return, RemovePeering). What is slow holds nothing else up.
//
// Time. A step's budget is judged by its activity, by a clock that it keeps in its heartbeats (activities/passes.go).
// A timeout of Temporal's (steps.go) is never an event: the activity runs again. Only a typed answer of the
// activity's own code is the provider's no.
//
// What exists wins. The observer reads the memos, then lists what exists, and signals each entity that differs. The
// entity judges each row by its present state, and acts on what two rounds in a row show. A group that is behind what
// its server, its drivers or its objects have seen begins anew from what exists, under a new epoch.
//
// # The files
//
// Each workflow is in the file of its name. entity.go is the loop of both entities, with memo and continue-as-new;
// nodegroup.go and provider.go receive, and make tasks of commands. drive.go executes driver.Driver for scaleout.go and
// scalein.go, which have the steps. peering.go, unpeering.go and undo.go run one activity each, the first two another
// one that reports; hub.go is the claim of one cluster. What observes is no workflow, see worker/observer.
//
// names.go has types, signals, ids and queues; steps.go the timeouts, retries and lanes of activities; describe.go
// what people read of an entity in the UI and the log; alarm.go the one timer of a workflow; reset.go how a run
// notices that an operator has reset it. What is decided is in the packages that fleet's doc.go lists; worker
// registers the workflows and activities.
package workflows
