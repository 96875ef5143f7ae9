package grpcserver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// The server remembers a released instance for three minutes, however many snapshots it reads, and then forgets it. An
// instance that counts again, for example after an adoption, is not released.
func TestReleasedNamesAreRememberedForThreeMinutes(t *testing.T) {
	at := func(names ...string) *picture {
		s := fleet.Snapshot{Group: "cpu"}
		for _, name := range names {
			s.Instances = append(s.Instances, fleet.InstanceView{Name: name, State: fleet.StateRunning, Counts: true})
		}
		return newPicture(s)
	}
	now := time.Now()
	p := at("a", "b", "c")
	next := func(later time.Duration, names ...string) {
		now = now.Add(later)
		q := at(names...)
		q.left = p.releasedWith(q, now)
		p = q
	}
	next(0, "b", "c")
	require.True(t, p.released("a", now))
	require.False(t, p.released("b", now))
	next(time.Minute, "c")
	next(time.Minute, "b", "c")
	require.True(t, p.released("a", now))
	require.False(t, p.released("b", now), "it counts again")
	require.False(t, p.released("a", now.Add(time.Minute)), "three minutes have passed")
	next(time.Minute, "b", "c")
	require.Empty(t, p.left)
	var none *picture
	require.Nil(t, none.releasedWith(p, now))
	require.False(t, none.released("a", now))
}

// A group that releases one instance a second keeps only the names of the last three minutes.
func TestReleasedNamesAreForgotten(t *testing.T) {
	p, now := newPicture(fleet.Snapshot{}), time.Now()
	for n := range 10_000 {
		row := fleet.InstanceView{Name: fmt.Sprint(n), State: fleet.StateRunning, Counts: true}
		q := newPicture(fleet.Snapshot{Instances: []fleet.InstanceView{row}})
		now = now.Add(time.Second)
		q.left = p.releasedWith(q, now)
		p = q
	}
	require.Len(t, p.left, int(releasedFor/time.Second))
}
