package server

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// query holds the parameters of a request for a list.
type query struct {
	selector  labels.Selector
	resources corev1.ResourceList
	after     string
	limit     int
}

// parameters contains, for each parameter of a list, how often the parameter may occur.
var parameters = map[string]int{"labelSelector": 1, "resource": 32, "after": 1, "limit": 1}

var maxLimit = strconv.Itoa(api.MaxLimit)

// parseQuery parses a query such as
// ?labelSelector=country=it&resource=cpu=2&resource=memory=4Gi&after=name&limit=100.
func parseQuery(values url.Values) (query, error) {
	var wrong []api.FieldError
	bad := func(path, detail string) { wrong = append(wrong, api.FieldError{Path: path, Detail: detail}) }
	for key, vals := range values {
		most, ok := parameters[key]
		if !ok {
			bad(key, "unknown parameter; known: labelSelector, resource, after, limit")
		} else if len(vals) > most {
			bad(key, "is given too often")
		}
	}
	selector, err := parseSelector(values.Get("labelSelector"))
	if err != nil {
		bad("labelSelector", err.Error())
	}
	q := query{selector: selector, resources: corev1.ResourceList{}, after: values.Get("after")}
	for _, part := range values["resource"] {
		if err := q.addResource(part); err != nil {
			bad("resource", "write name=amount, such as cpu=2 or nvidia.com/gpu=1")
		}
	}
	if !nameable(q.after) {
		bad("after", "is not a name of an offer")
	}
	q.limit, err = strconv.Atoi(cmp.Or(values.Get("limit"), maxLimit))
	if err != nil || q.limit < 1 || q.limit > api.MaxLimit {
		bad("limit", "must be a whole number from 1 to "+maxLimit)
	}
	if len(wrong) > 0 {
		slices.SortFunc(wrong, func(a, b api.FieldError) int { return strings.Compare(a.Path, b.Path) })
		p := problem(http.StatusBadRequest, "", "the query cannot be used")
		p.Errors = wrong
		return query{}, p
	}
	return q, nil
}

// maxTerms bounds the number of keys and values in a selector, because a store translates each into an SQL expression.
const maxTerms = 32

// parseSelector parses a label selector. An empty selector matches every offer.
func parseSelector(text string) (labels.Selector, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, err
	}
	requirements, _ := selector.Requirements()
	terms := len(requirements)
	for _, r := range requirements {
		terms += r.Values().Len()
	}
	if terms > maxTerms {
		return nil, fmt.Errorf("has more than %d keys and values", maxTerms)
	}
	return selector, nil
}

// addResource parses a text of the form name=amount, and adds the resource to the query.
func (q query) addResource(text string) error {
	name, amount, _ := strings.Cut(text, "=")
	parsed, err := strictyaml.Quantity(amount)
	if err == nil && name == "" {
		err = errors.New("the name is missing")
	}
	q.resources[corev1.ResourceName(name)] = parsed
	return err
}

func (q query) matches(r store.Record) bool {
	if !q.selector.Matches(labels.Set(r.Offer.Labels)) {
		return false
	}
	for name, want := range q.resources {
		lent, ok := r.Offer.Lendable[name]
		if !ok && name == corev1.ResourceEphemeralStorage {
			continue // a resource that the offer does not list is unlimited, as in choice.Choose
		}
		if lent.Cmp(want) < 0 {
			return false
		}
	}
	return true
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, who Writer) (did string, err error) {
	q, err := parseQuery(r.URL.Query())
	if err != nil {
		return "", err
	}
	now, err := s.options.Store.Now(r.Context())
	if err != nil {
		return "", err
	}
	isInForce, err := s.inForce(who)
	if err != nil {
		return "", err
	}
	page := api.List{Items: []api.Offer{}}
	ask := store.Query{After: q.after, Limit: api.MaxLimit, Selector: q.selector}
	for {
		records, err := s.options.Store.List(r.Context(), ask, now)
		if err != nil {
			return "", err
		}
		for _, record := range records {
			if !q.matches(record) || !who.mayRead(record) || !isInForce(record) {
				continue
			}
			if len(page.Items) == q.limit { // one more offer matches: there is another page
				page.Next = page.Items[q.limit-1].Name
				s.reply(w, r, http.StatusOK, api.ContentJSON, page)
				return "", nil
			}
			page.Items = append(page.Items, view(record, now))
		}
		if len(records) < ask.Limit {
			s.reply(w, r, http.StatusOK, api.ContentJSON, page)
			return "", nil
		}
		ask.After = records[len(records)-1].Offer.Name
	}
}
