package doctor

import (
	"context"
)

// Examine runs all checks. It blocks while it makes about a dozen requests to API servers.
func Examine(ctx context.Context, in Installation) *Report {
	r := &Report{}
	if in.Temporal != nil {
		r.temporal(*in.Temporal)
	}
	if in.Temporal != nil && in.Temporal.Err == nil {
		r.groups(in)
		r.offers(in)
	}
	var c *cluster
	if in.Kube != nil {
		c = readCluster(ctx, in, r)
		r.kubernetes(in, c)
		r.processes(c)
		r.rights(ctx, c)
		r.policies(ctx, c)
		r.autoscaler(ctx, in, c)
		r.otherAutoscalers(c)
		r.certificates(ctx, in, c)
		r.nodes(in, c)
		r.otherHubs(c)
		r.rejected(ctx, c)
	}
	for _, p := range in.Providers {
		r.provider(ctx, p, c, in.Now)
	}
	return r
}
