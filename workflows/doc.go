// Package workflows is the durable part of the system: it stores the requests of Cluster Autoscaler and the state of
// each instance, and contains the workflows that drive the instances. Its code is deterministic, and activities do
// everything that has an effect outside the workflows. Three pure packages make the decisions: fleet for groups,
// driver for instances, and provider for providers. Each workflow receives messages, calls Step, and executes the
// decisions of Step.
//
// # The signals between workflows
//
// Two kinds of workflow, the entities, run for a long time and only update their state: a NodeGroup for each group,
// and a Provider for each provider cluster. A Provider closes after a day without use. All other workflows run for
// seconds or minutes; undos and removals run until their provider is reachable. Entities start the other workflows by
// an activity, never as children. Every message between workflows is a signal that an activity sends. Each process
// combines its views, facts and requests for holds into few signals (client.Messages).
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
//	             the observer (every minute) ──differences──▶ nodegroup/<group>, provider/<id>
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
// A scale-in begins with an update: it answers DeleteNodes and marks the instance as leaving. scale-in/<name> runs
// Drain and Return, sends the view Released and releases the hold. When the last hold is released and the linger time
// has passed, unpeering/<id> removes the peering, if this installation made it and nothing uses it.
//
// # The rules
//
// One writer. While a driver runs, only the driver applies the table of transitions (fleet.Machine) to its instance,
// and it sends views. Without a driver the group applies the table, and after a recovery or a driver's loss it sets
// the phase from the existing objects (fleet/results.go). A view contains the generation of its driver (epoch, number
// of starts) and a sequence. The group stops a driver of an older generation. Only the group starts an undo: after the
// view that names the next attempt, after a last view, and for objects that a recovery, a replaced driver or the
// observer finds.
//
// Commands. A command is an entity's request for work outside the entity. It is part of the entity's state until its
// result has arrived (fleet.Commands). Therefore no command is lost at continue-as-new, and every command may run
// twice. One activity executes many commands, and returns one result for each.
//
// The memo. An entity publishes its snapshot at most once per task, compressed above 8 KiB (memo.go). The server reads
// it without a worker. Updates return the position of the group after the operation; the memo of the same task has
// this position or a later one.
//
// Lanes. Each hub has four task queues, called lanes (names.go): entities, drivers, making (Establish, Join) and
// removing (Drain, Return, RemovePeering). Every worker process runs a worker for each queue, so that slow work does
// not delay the other queues.
//
// Time. The activity of a step checks the step's budget. It stores the used time in its heartbeats
// (activities/passes.go). A timeout of Temporal (steps.go) never causes an event: the activity runs again. Only a
// typed error of the activity's own code counts as the provider's refusal.
//
// Existing objects win. The observer reads the memos, then lists the existing objects, and sends a signal to each
// entity that differs. The entity compares each difference with its present state, and acts on differences that two
// consecutive rounds report. If the server, a driver or an object shows that a group once had a newer position than
// now, the group is rebuilt from the existing objects, under a new epoch.
//
// # The files
//
// Each workflow is in the file with its name. entity.go contains the loop of both entities, with memo and
// continue-as-new. nodegroup.go and provider.go receive messages and translate commands into tasks. drive.go executes
// driver.Driver for scaleout.go and scalein.go, which contain the steps. peering.go, unpeering.go and undo.go run one
// activity each; the first two run another activity to report. hub.go contains the workflow that claims a hub for one
// cluster and stores the bills of ended groups. The observer is not a workflow, see worker/observer.
//
// names.go defines types, signals, ids and queues. steps.go defines Temporal's timeouts, retries and lanes of
// activities; the budgets of steps are in internal/fleet/spec.go. describe.go writes the texts about an entity in the
// UI and the log. alarm.go contains the only timer of a workflow. reset.go detects an operator's reset. The code of
// the decisions is in the packages that the doc.go of fleet lists. Package worker registers the workflows and
// activities.
package workflows
