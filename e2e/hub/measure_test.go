package hub

import (
	"bufio"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"database/sql"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/temporal"
)

// sample is a metric's value, with its labels as text.
type sample struct {
	labels string
	value  float64
}

var line = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})? ([0-9.eE+-]+)$`)

// scrape reads all samples of one metric.
func scrape(t *testing.T, url, name string) (all []sample) {
	t.Helper()
	response, err := http.Get(url) //nolint:gosec // our own process
	require.NoError(t, err)
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if m := line.FindStringSubmatch(lines.Text()); m != nil && m[1] == name {
			value, err := strconv.ParseFloat(m[3], 64)
			require.NoError(t, err)
			all = append(all, sample{m[2], value})
		}
	}
	require.NoError(t, lines.Err())
	return all
}

var label = regexp.MustCompile(`(\w+)="([^"]*)"`)

// requests returns the requests to Temporal's frontend in our namespace, by operation.
func requests(t *testing.T, s *temporal.Small) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for _, one := range scrape(t, s.Metrics, "service_requests") {
		labels := map[string]string{}
		for _, m := range label.FindAllStringSubmatch(one.labels, -1) {
			labels[m[1]] = m[2]
		}
		if labels["service_name"] == "frontend" && labels["namespace"] == temporal.Namespace {
			out[labels["operation"]] += one.value
		}
	}
	return out
}

// billed lists those operations that Temporal Cloud bills and that a worker at rest may use.
var billed = []string{"StartWorkflowExecution", "SignalWorkflowExecution", "SignalWithStartWorkflowExecution",
	"UpdateWorkflowExecution", "ExecuteMultiOperation", "RespondActivityTaskCompleted", "RespondActivityTaskFailed",
	"RecordActivityTaskHeartbeat", "QueryWorkflow"}

// sum returns by how much the counts of the given operations have increased from before to after. Without operations
// it counts all.
func sum(before, after map[string]float64, of ...string) (n float64) {
	for operation, count := range after {
		if len(of) == 0 || strings.Contains(" "+strings.Join(of, " ")+" ", " "+operation+" ") {
			n += count - before[operation]
		}
	}
	return n
}

// used returns the number of used bytes of the database.
func used(t *testing.T, file string) (bytes int64) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?mode=ro&_pragma=busy_timeout(10000)")
	require.NoError(t, err)
	defer db.Close()
	var pages, free, size int64
	require.NoError(t, db.QueryRow("pragma page_count").Scan(&pages))
	require.NoError(t, db.QueryRow("pragma freelist_count").Scan(&free))
	require.NoError(t, db.QueryRow("pragma page_size").Scan(&size))
	return (pages - free) * size
}
