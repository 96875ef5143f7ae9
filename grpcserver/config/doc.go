// Package config reads the node groups from their YAML file. Only the gRPC server reads the file. Workers receive a
// group's spec when the server configures the group.
//
//	hub: default            # optional: the name of this installation
//	limits: {nodes: 20, cpu: 80, memory: 160Gi} # of all groups together; optional
//	defaults:               # for groups that do not set them; shape, labels and budgets key by key
//	  max: 5
//	  shape: {pods: 110, ephemeral-storage: 20Gi}
//	nodeGroups:
//	- id: cpu
//	  min: 0
//	  max: 10
//	  shape: {cpu: "4", memory: 8Gi, pods: "110"}
//	  labels: {tier: burst}
//	  taints: [{key: burst, value: "true", effect: NoSchedule}]
//	  groupTaint: NoSchedule # short for the taint liqo-autoscaler.io/group=<id>:NoSchedule
//	  selector: {matchLabels: {region: eu}}
//	  budgets: {peer: 90s, join: 2m, total: 12m}
//
// Reading is strict (package strictyaml): unknown fields are refused. The error lists all faults, each with its line,
// its path and the action to take.
package config
