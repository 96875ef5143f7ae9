package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// forUsers describes the signals and updates that users send. The Temporal UI shows these texts.
var forUsers = map[string]string{
	SignalRetry: "For operators: lets the stuck instances of this node group continue. It needs no argument.",
	SignalCordon: "For operators: true keeps new nodes off this provider, false allows them again. " +
		"The command is liqo-autoscaler cordon provider ID.",
	SignalPauseObserver: "For operators: true pauses the observer, which then changes nothing; false resumes it. " +
		" The command is liqo-autoscaler pause observer.",
	QueryBills: "The costs of node groups that have ended, by day and provider. The command is liqo-autoscaler report.",
	QueryDays:  "The costs of past days, by provider. The command is liqo-autoscaler report.",
	string(fleet.Pause): "For operators: a paused node group starts no instances. " +
		"The command is liqo-autoscaler pause group ID.",
}

// description returns the text about a signal or an update for the Temporal UI.
func description(name string) string {
	if text, ok := forUsers[name]; ok {
		return text
	}
	return "Internal: liqo-autoscaler's server, workers and workflows send it. Do not send it by hand."
}

func signalChannel(ctx workflow.Context, name string) workflow.ReceiveChannel {
	return workflow.GetSignalChannelWithOptions(ctx, name, workflow.SignalChannelOptions{Description: description(name)})
}
