package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/jsonguard"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// Source is a discovery.Source of the server's offers.
type Source struct {
	client *Client

	mu       sync.Mutex
	listed   time.Time // the time at which the last list was received; zero before the first list
	ends     map[string]end
	offers   []fleet.Offer
	problems []discovery.Problem
}

// NewSource returns a Source. It returns an error if the client's options do not set SecretNamespaces.
func NewSource(client *Client) (*Source, error) {
	if len(client.options.SecretNamespaces) == 0 {
		return nil, errors.New("make discovery source: give the namespaces to whose Secrets offers may refer")
	}
	return &Source{client: client}, nil
}

// Name implements discovery.Source.
func (*Source) Name() string { return "api" }

// Claims implements discovery.Claimant. It returns true, because a writer may write any provider id.
func (*Source) Claims() bool { return true }

// List implements discovery.Source. While the server is unreachable, List returns the last list with a Problem, for
// up to Options.KeepStale. If the server denies access, List returns an error immediately.
func (s *Source) List(ctx context.Context) ([]fleet.Offer, []discovery.Problem, error) {
	asked := s.client.options.Now()
	items, err := s.client.fetch(ctx)
	now := s.client.options.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.listed = now
		s.offers, s.problems = s.validate(items, asked)
	case !errors.Is(err, ErrUnreachable), ctx.Err() != nil, s.listed.IsZero(),
		now.Sub(s.listed) >= s.client.options.KeepStale:
		return nil, nil, fmt.Errorf("list offers: %w", err)
	}
	offers := make([]fleet.Offer, len(s.offers))
	for i, o := range s.offers {
		offers[i] = discovery.CopyOffer(o)
		offers[i].ReadAt = s.listed // a reused list keeps the time at which it was received
	}
	problems := slices.Clone(s.problems)
	if err != nil {
		problems = append(problems, discovery.NewProblem(s.Name(), "", "the list of %s is used: %v",
			s.listed.UTC().Format(time.RFC3339), err))
	}
	return offers, problems, nil
}

// These constants bound a list, because each offer costs memory and time in every worker.
const (
	maxPages       = 40       // pages with 500 offers each
	maxList        = 16 << 20 // bytes of all offers
	maxPerProvider = 1 << 20  // bytes of one provider's offers, equal to the server's quota for one writer
	maxProblems    = 100      // Problems of one list
	maxName        = 253      // bytes of an offer's name
)

// page is one response of the server.
type page struct {
	Items *items `json:"items"`
	Next  string `json:"next"`
}

// items are the offers of a page before they are decoded. The client decodes them one by one, so that an invalid item
// does not make the other items unreadable.
type items []json.RawMessage

// UnmarshalJSON implements json.Unmarshaler. It returns an error when a page has too many items, because a page of
// empty objects would need a hundred times its size in memory.
func (all *items) UnmarshalJSON(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('[') {
		return fmt.Errorf("items is not a list: %.20s", raw)
	}
	*all = items{}
	for decoder.More() {
		if len(*all) == api.MaxLimit {
			return fmt.Errorf("a page has more than %d offers", api.MaxLimit)
		}
		var item json.RawMessage
		if err := decoder.Decode(&item); err != nil {
			return err
		}
		*all = append(*all, item)
	}
	return nil
}

// fetch gets all pages of the list, and returns their items.
func (c *Client) fetch(ctx context.Context) ([]json.RawMessage, error) {
	var all []json.RawMessage
	after, size := "", 0
	for range maxPages {
		target := c.target("")
		target.RawQuery = url.Values{"limit": {strconv.Itoa(api.MaxLimit)}, "after": {after}}.Encode()
		var answered page
		if err := c.do(ctx, http.MethodGet, target, nil, &answered); err != nil {
			return nil, err
		}
		if answered.Items == nil {
			return nil, fmt.Errorf("%w: the answer is not a list of offers", ErrUnreachable)
		}
		all = append(all, *answered.Items...)
		for _, item := range *answered.Items {
			size += len(item)
		}
		if size > maxList {
			return nil, fmt.Errorf("%w: the offers have more than %d bytes", ErrUnreachable, maxList)
		}
		if answered.Next == "" {
			return all, nil
		}
		if answered.Next <= after || len(answered.Next) > maxName {
			return nil, fmt.Errorf("%w: pagination does not advance", ErrUnreachable)
		}
		after = answered.Next
	}
	return nil, fmt.Errorf("%w: the list has more than %d offers", ErrUnreachable, maxPages*api.MaxLimit)
}

// Names returns the names of the offers that the server lists for this client. For a writer these are the writer's
// own offers. For any other client they are all offers that the client may read. Names skips an item whose name is
// invalid. Its errors are ErrUnreachable and ErrDenied.
func (c *Client) Names(ctx context.Context) (names []string, err error) {
	items, err := c.fetch(ctx)
	for _, raw := range items {
		var head struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(raw, &head) == nil && len(validation.IsDNS1123Subdomain(head.Name)) == 0 {
			names = append(names, head.Name)
		}
	}
	return names, err
}

func (s *Source) validate(items []json.RawMessage, asked time.Time) (offers []fleet.Offer,
	problems []discovery.Problem) {
	ends, spent := map[string]end{}, map[string]int{} // spent counts the bytes by provider
	wrong := 0
	report := func(p discovery.Problem) {
		if wrong++; wrong <= maxProblems {
			problems = append(problems, p)
		}
	}
	for i, raw := range items {
		provider := providerOf(raw)
		before := spent[provider]
		if spent[provider] += len(raw); spent[provider] > maxPerProvider {
			if before <= maxPerProvider {
				report(discovery.NewProblem(s.Name(), "", "provider %s has offers of more than %d bytes: the others are omitted",
					strings.Map(printable, provider), maxPerProvider))
			}
			continue
		}
		name, posted, err := s.client.read(raw)
		if _, seen := ends[posted.Name]; err == nil && seen {
			err = errors.New("is listed twice")
		}
		if err != nil {
			name = cmp.Or(name, "number "+strconv.Itoa(i+1))
			report(discovery.NewProblem(s.Name(), name, "%v", err))
			continue
		}
		offer := posted.Offer()
		ends[posted.Name] = s.ends[posted.Name].resolve(posted, asked)
		offer.Expires = ends[posted.Name].ours
		offers = append(offers, offer)
	}
	if wrong > maxProblems {
		problems = append(problems, discovery.NewProblem(s.Name(), "", "%d more problems", wrong-maxProblems))
	}
	s.ends = ends
	slices.SortFunc(offers, func(a, b fleet.Offer) int { return cmp.Compare(a.Name, b.Name) })
	return offers, problems
}

// providerOf returns the provider of an item that is not validated yet. It returns "" if the item has no provider.
func providerOf(raw json.RawMessage) string {
	var head struct {
		Provider string `json:"provider"`
	}
	_ = json.Unmarshal(raw, &head)
	return head.Provider
}

// read decodes and validates an item of a list. The error is the reason for which the item is rejected. Even then
// read returns the name, if it is readable, so that a Problem can name the offer.
func (c *Client) read(raw json.RawMessage) (name string, posted listedOffer, err error) {
	var head struct {
		Name     string                     `json:"name"`
		Lendable map[string]json.RawMessage `json:"lendable"`

		LargestNodes []map[string]json.RawMessage `json:"largestNodes"`
	}
	_ = json.Unmarshal(raw, &head)
	name = strings.Map(printable, head.Name)
	if err := discovery.ContractOf(raw).VersionFaults().Err(); err != nil {
		return name, posted, err
	}
	err = errors.Join(amounts("lendable", head.Lendable), lengths(raw))
	for n, node := range head.LargestNodes {
		err = errors.Join(err, amounts(fmt.Sprintf("largestNodes[%d]", n), node))
	}
	if err == nil { // the amounts are checked first, because some amounts are expensive to parse
		err = json.Unmarshal(raw, &posted)
	}
	if err != nil {
		return name, posted, fmt.Errorf("cannot be read: %w", err)
	}
	if err := posted.Check(); err != nil {
		return name, posted, err
	}
	if ns := posted.Credentials.SecretRef.Namespace; !slices.Contains(c.options.SecretNamespaces, ns) {
		return name, posted, fmt.Errorf("refers to a Secret in namespace %s; allowed: %s", ns,
			strings.Join(c.options.SecretNamespaces, ", "))
	}
	return name, posted, c.mayDial(posted.Network)
}

// mayDial returns an error when the network contains an address outside NetworkCIDRs. A DNS name is an error too,
// because it could resolve to any address.
func (c *Client) mayDial(network *discovery.NetworkSpec) error {
	named := network.Addresses()
	for _, field := range slices.Sorted(maps.Keys(named)) {
		ip, err := netip.ParseAddr(named[field])
		if err == nil && slices.ContainsFunc(c.cidrs, func(cidr netip.Prefix) bool { return cidr.Contains(ip.Unmap()) }) {
			continue
		}
		if len(c.cidrs) == 0 {
			return fmt.Errorf("%s: offers of the discovery server may not contain addresses: allow them with "+
				"--discovery-network-cidrs of the worker", field)
		}
		return fmt.Errorf("%s: %.80s is not in --discovery-network-cidrs of the worker (%s)", field, named[field],
			strings.Join(c.options.NetworkCIDRs, ", "))
	}
	return nil
}

// printable replaces control characters, so that an invalid name cannot corrupt the terminal.
func printable(r rune) rune {
	if unicode.IsControl(r) || r == utf8.RuneError {
		return '?'
	}
	return r
}

// amounts returns an error if a quantity is expensive to parse. It accepts other invalid values; later checks refuse
// them.
func amounts(at string, list map[string]json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		text := string(list[name])
		if text[0] == '{' || text[0] == '[' || text == "null" {
			continue
		}
		if _, err := strictyaml.Quantity(strings.TrimSpace(strings.Trim(text, `"`))); err != nil {
			return fmt.Errorf("%s: %w", strictyaml.Join(at, name), err)
		}
	}
	return nil
}

// lengths returns an error for an amount that is too long. If a key is repeated, lengths checks each value, whereas
// the function amounts sees only the last value.
func lengths(raw json.RawMessage) error {
	short, err := io.ReadAll(jsonguard.New(bytes.NewReader(raw), jsonguard.Limits{}))
	if err == nil && !bytes.Equal(short, raw) {
		err = errors.New("an amount has too many digits")
	}
	return err
}
