package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// kind describes one kind of object, which is stored in one map of the State. In the world file an object has the key
// <kind>/<key in the map>.
type kind struct {
	keys   func(*State) iter.Seq[string]
	get    func(s *State, key string) any         // returns nil for a missing object
	set    func(s *State, key string, object any) // the object nil removes the entry
	copy   func(object any) any
	decode func(raw []byte) (any, error)
	fork   func(s *State) // replaces the State's map by a copy
	make   func(s *State) // makes the map
}

var kinds = map[string]kind{
	"delays": {
		keys: func(*State) iter.Seq[string] { return func(yield func(string) bool) { yield("") } },
		get:  func(s *State, _ string) any { return s.Delays },
		set: func(s *State, _ string, object any) {
			s.Delays, _ = object.(Delays) // nil: all delays are zero
		},
		copy:   func(object any) any { return object },
		decode: decode[Delays],
		fork:   func(*State) {},
		make:   func(*State) {},
	},
	"provider": kindOf(func(s *State) *map[string]*Provider { return &s.Providers }, func(p *Provider) *Provider {
		c := *p
		if p.Tenant != nil {
			tenant := p.Tenant.copy()
			c.Tenant = &tenant
		}
		return &c
	}),
	"remote": kindOf(func(s *State) *map[string]*RemoteSlice { return &s.RemoteSlices },
		func(r *RemoteSlice) *RemoteSlice {
			return &RemoteSlice{Object: r.copy(), Granted: r.Granted}
		}),
	"peering": kindOf(func(s *State) *map[string]*Peering { return &s.Consumer.Peerings }, func(p *Peering) *Peering {
		return &Peering{Object: p.copy(), Track: p.Track, BothWays: p.BothWays}
	}),
	"refused": kindOf(func(s *State) *map[string]*Refused { return &s.Consumer.Refused }, func(r *Refused) *Refused {
		return &Refused{Object: r.copy(), Until: r.Until}
	}),
	"slice": kindOf(func(s *State) *map[string]*Slice { return &s.Consumer.Slices }, func(o *Slice) *Slice {
		return &Slice{Object: o.copy(), Track: o.Track, Asked: o.Asked}
	}),
	"virtual": kindOf(func(s *State) *map[string]*Object { return &s.Consumer.Virtuals }, func(o *Object) *Object {
		c := o.copy()
		return &c
	}),
	"kubelet": kindOf(func(s *State) *map[string]*Kubelet { return &s.Consumer.Kubelets }, func(k *Kubelet) *Kubelet {
		return &Kubelet{Node: k.Node.DeepCopy(), Dead: k.Dead, Missing: k.Missing}
	}),
	"node": kindOf(func(s *State) *map[string]*corev1.Node { return &s.Consumer.Nodes }, (*corev1.Node).DeepCopy),
	"pods": kindOf(func(s *State) *map[string][]Pod { return &s.Consumer.Pods }, func(pods []Pod) []Pod {
		return append([]Pod(nil), pods...)
	}),
}

func kindOf[V any](in func(*State) *map[string]V, clone func(V) V) kind {
	return kind{
		keys: func(s *State) iter.Seq[string] { return maps.Keys(*in(s)) },
		get: func(s *State, key string) any {
			if object, ok := (*in(s))[key]; ok {
				return object
			}
			return nil
		},
		set: func(s *State, key string, object any) {
			if v, ok := object.(V); ok {
				(*in(s))[key] = v
			} else {
				delete(*in(s), key)
			}
		},
		copy:   func(object any) any { return clone(object.(V)) },
		decode: decode[V],
		fork:   func(s *State) { *in(s) = maps.Clone(*in(s)) },
		make:   func(s *State) { *in(s) = map[string]V{} },
	}
}

func decode[V any](raw []byte) (any, error) {
	var v V
	err := json.Unmarshal(raw, &v)
	return v, err
}

func (o *Object) copy() Object {
	c := *o
	c.Labels, c.Annotations = maps.Clone(o.Labels), maps.Clone(o.Annotations)
	return c
}

// attemptKeys returns the keys of the objects that a verb on the attempt reads or changes.
func attemptKeys(a fleet.Attempt) func(*State) []string {
	return func(s *State) []string {
		name, ids := a.ObjectName(), []string{a.Provider.ID}
		if slice := s.Consumer.Slices[name]; slice != nil && slice.Provider != a.Provider.ID {
			ids = append(ids, slice.Provider)
		}
		keys := []string{"slice/" + name, "virtual/" + name, "kubelet/" + name, "node/" + name, "pods/" + name}
		for _, id := range ids {
			keys = append(keys, "provider/"+id, "peering/"+id, "refused/"+id, "remote/"+remoteKey(id, name))
		}
		return keys
	}
}

// providerKeys returns the keys of the objects that a verb on the provider reads or changes.
func providerKeys(id string) func(*State) []string {
	return func(*State) []string { return []string{"provider/" + id, "peering/" + id, "refused/" + id} }
}

// allKeys returns the keys of all existing objects.
func allKeys(s *State) []string {
	var keys []string
	for name, k := range kinds {
		for key := range k.keys(s) {
			keys = append(keys, name+"/"+key)
		}
	}
	return keys
}

// kindAndKey splits a key. The result ok is false for a kind that does not exist.
func kindAndKey(key string) (k kind, rest string, ok bool) {
	name, rest, _ := strings.Cut(key, "/")
	k, ok = kinds[name]
	return k, rest, ok
}

// object returns the object of a key, or nil.
func (s *State) object(key string) any {
	k, rest, _ := kindAndKey(key)
	return k.get(s, rest)
}

// put sets the object of a key. If object is nil, it removes the entry.
func (s *State) put(key string, object any) {
	k, rest, _ := kindAndKey(key)
	k.set(s, rest, object)
}

// differences calls the function change on the State, and then restores the State. It returns the changed objects in
// JSON; a removed object is null. The function keys returns the keys of the objects that may change. differences
// calls it before and after change. Changes of an object are lost if its key is in neither result.
func (s *State) differences(keys func(*State) []string, change func(*State) error) (map[string]json.RawMessage, error) {
	before := map[string]any{}
	for _, key := range keys(s) {
		k, rest, _ := kindAndKey(key)
		object := k.get(s, rest)
		before[key] = object
		if object != nil {
			k.set(s, rest, k.copy(object))
		}
	}
	failed := change(s)
	for _, key := range keys(s) {
		if _, ok := before[key]; !ok {
			before[key] = nil
		}
	}
	set := map[string]json.RawMessage{}
	for key, was := range before {
		is := s.object(key)
		s.put(key, was)
		if failed != nil || reflect.DeepEqual(was, is) {
			continue
		}
		old, err := json.Marshal(was)
		if err == nil {
			set[key], err = json.Marshal(is)
		}
		if err != nil {
			failed = fmt.Errorf("write %s: %w", key, err)
		}
		if bytes.Equal(old, set[key]) { // quantities may differ in notation only
			delete(set, key)
		}
	}
	return set, failed
}
