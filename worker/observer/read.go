package observer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// These constants bound the reads of a round.
const (
	// concurrentReads bounds the number of concurrent reads.
	concurrentReads = 32
	// readBound limits the read of one entity. readingBound limits the reads of all entities together. The round skips
	// the entities that it could not read in this time.
	readBound    = 5 * time.Second
	readingBound = 20 * time.Second
	// rotation is the number of offered providers that one round reads in addition to the known providers. The rounds read
	// all offered providers in rotation.
	rotation = 20
	// listedEvery is the number of rounds between two lists of the names in Temporal's visibility index.
	listedEvery = 5
)

// booked holds the snapshots that a round has read.
type booked struct {
	groups    []fleet.Snapshot
	providers []fleet.ProviderSnapshot
	// unread marks, by groupID or providerID, the entities that could not be read. absent marks the entities that do not
	// run.
	unread, absent map[string]bool
	term           int64 // the highest term that an entity has published
}

func groupID(name string) string    { return "group/" + name }
func providerID(name string) string { return "provider/" + name }

func (b *booked) unreadGroup(name string) bool    { return b.unread[groupID(name)] }
func (b *booked) unreadProvider(name string) bool { return b.unread[providerID(name)] }
func (b *booked) sawProvider(name string) bool {
	return slices.ContainsFunc(b.providers, func(p fleet.ProviderSnapshot) bool { return p.ID == name })
}

// read reads the entities whose names are known: first the providers, then the groups, including groups that are known
// only from a hold. A group books an instance before the provider receives the instance's hold. So with this order,
// whenever read has seen a hold, it also sees the booking.
func (o *Observer) read(ctx context.Context, s *state, offers []fleet.Offer) booked {
	ctx, cancel := context.WithTimeout(ctx, readingBound)
	defer cancel()
	b := booked{unread: map[string]bool{}, absent: map[string]bool{}}
	if s.first || s.Round.Number%listedEvery == 0 {
		o.addListed(ctx, s)
	}
	s.Providers = merged(s.Providers, s.rotated(offers))
	b.providers = readEach(ctx, &b, s.Providers, providerID, o.Entities.Status)
	for _, p := range b.providers {
		b.term = max(b.term, p.Term)
		for _, key := range p.Holds {
			s.Groups = append(s.Groups, fleet.GroupOfKey(key))
		}
		for key := range p.Standby {
			s.Groups = append(s.Groups, fleet.GroupOfKey(key))
		}
	}
	s.Groups = merged(s.Groups, nil)
	b.groups = readEach(ctx, &b, s.Groups, groupID, o.Entities.Group)
	for _, g := range b.groups {
		b.term = max(b.term, g.Term)
	}
	return b
}

// addListed lists the running entities in Temporal's visibility index, and adds their names to the names to read. It
// logs an error, and then adds only the names that it could read.
func (o *Observer) addListed(ctx context.Context, s *state) {
	ctx, cancel := context.WithTimeout(ctx, readBound)
	defer cancel()
	groups, err := o.Entities.GroupNames(ctx)
	providers, errProviders := o.Entities.ProviderNames(ctx)
	if err = cmp.Or(err, errProviders); err != nil {
		o.Logger.Info("cannot list Temporal's visibility index; continuing with the known names", "error", err)
	}
	s.Groups, s.Providers = merged(s.Groups, groups), merged(s.Providers, providers)
}

// rotated returns the next offered providers of the rotation, and advances the rotation.
func (s *state) rotated(offers []fleet.Offer) (next []string) {
	var all []string
	for _, o := range offers {
		all = append(all, o.Provider)
	}
	all = merged(all, nil)
	first, _ := slices.BinarySearch(all, s.Offered)
	for n := range min(len(all), rotation) {
		next = append(next, all[(first+n)%len(all)])
	}
	if s.Offered = ""; len(all) > 0 {
		s.Offered = all[(first+len(next))%len(all)]
	}
	return next
}

// merged returns the names of both lists, sorted and without duplicates.
func merged(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool { return name == "" })
}

// readEach reads the entities with these names concurrently, and returns the entities that it could read. It marks
// all other entities in b as absent or unread.
func readEach[T any](ctx context.Context, b *booked, names []string, id func(string) string,
	read func(context.Context, string) (T, error)) (all []T) {
	var mu sync.Mutex
	wait.ForAll(names, concurrentReads, func(_ int, name string) {
		bounded, cancel := context.WithTimeout(ctx, readBound)
		defer cancel()
		one, err := read(bounded, name)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			all = append(all, one)
		case errors.Is(err, fleet.ErrNotRunning):
			b.absent[id(name)] = true
		default:
			b.unread[id(name)] = true
		}
	})
	return all
}
