package hub

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

var thousand = flag.Int("thousand", 0, "how many instances TestThousand creates; 0 measures nothing")

// TestThousand measures how the time of a large scale-out depends on the number of offers. It creates the same number
// of instances on 20 offers and on as many offers as instances, with equal room in all, and on offers with room for one
// instance. All prices differ. TestThousand prints the same BENCH lines as TestHub. The ratio compares the time with
// the time on 20 offers. The number of Describes includes the reads of Refresh, and has no bound. CA requests the
// instances once, so an instance that fails, for example with NoCapacity, fails the test.
func TestThousand(t *testing.T) {
	if *thousand == 0 {
		t.Skip("make bench SUITE=thousand runs it")
	}
	program := proc.Build(t, proc.Root())
	for _, rtt := range strings.Split(*rtts, ",") {
		few := cell{groups: 1, offers: 20, room: *thousand / 20, rtt: parse(t, "1x20", rtt).rtt}
		many, single := few, few
		many.offers, single.offers, single.room = *thousand, *thousand, 1
		var base, took time.Duration
		ran := true
		for _, c := range []struct {
			cell
			name string
			warm bool
		}{{few, "20-offers", true}, {many, "offers-as-many", true}, {single, "offers-for-one", false}} {
			ran = ran && t.Run(fmt.Sprintf("%s-rtt%s", c.name, rtt), func(t *testing.T) {
				var describes float64
				if took, describes = grown(t, program, c.cell, c.warm); base == 0 {
					base = took
				}
				fmt.Printf("BENCH thousand-%s-rtt%s %.1f s %.2f 20-offers\n", c.name, rtt, took.Seconds(),
					took.Seconds()/base.Seconds())
				fmt.Printf("BENCH thousand-%s-rtt%s-describes-a-scale-out %.2f requests 0.00 bound\n", c.name, rtt, describes)
			})
		}
		require.True(t, ran)
	}
}

// grown returns the duration of a scale-out, and the number of the requests DescribeWorkflowExecution for each instance.
// If warm is true, it first scales out and scales in all instances, and then measures a second scale-out. The peerings
// then exist already.
func grown(t *testing.T, program string, c cell, warm bool) (took time.Duration, describes float64) {
	t.Helper()
	s := newStack(t, program, c)
	testkit.Until(t, 5*time.Minute, "the node group is served", s.refresh)
	if !warm {
		return s.growAll()
	}
	s.growAll()
	s.release(0)
	testkit.Until(t, 40*time.Minute, "all nodes are released", func() error {
		w, err := s.world.Snapshot()
		if err == nil && w.Counts().Slices > 0 {
			err = fmt.Errorf("%d slices", w.Counts().Slices)
		}
		return err
	})
	return s.growAll()
}

// growAll creates all instances and returns the same values as grown.
func (s *stack) growAll() (took time.Duration, describes float64) {
	s.t.Helper()
	before := requests(s.t, s.temporal)
	s.grow(0, *thousand)
	took = s.until(40*time.Minute, 0, *thousand)
	all := sum(before, requests(s.t, s.temporal), "DescribeWorkflowExecution")
	return took, all / float64(*thousand)
}

// release deletes all instances of a group.
func (s *stack) release(group int) {
	s.t.Helper()
	id := fmt.Sprintf("g%d", group)
	testkit.Until(s.t, time.Minute, "DeleteNodes is answered", func() error {
		return s.call(func(ctx context.Context) error {
			nodes, err := s.client.NodeGroupNodes(ctx, &protos.NodeGroupNodesRequest{Id: id})
			if err != nil {
				return err
			}
			request := &protos.NodeGroupDeleteNodesRequest{Id: id}
			for _, i := range nodes.GetInstances() {
				request.Nodes = append(request.Nodes, &protos.ExternalGrpcNode{Name: i.GetId(), ProviderID: i.GetId()})
			}
			_, err = s.client.NodeGroupDeleteNodes(ctx, request)
			return err
		})
	})
}
