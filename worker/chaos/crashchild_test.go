package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdkworker "go.temporal.io/sdk/worker"
	"google.golang.org/grpc"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/file"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/derive"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/devserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// These are the environment variables of a child process, which runs this test binary again as a worker or as a gRPC
// server.
const (
	envRole      = "CRASH_ROLE"     // roleWorker or roleServer
	envParent    = "CRASH_PARENT"   // URL of the gate for side effects; unset: no gate
	envCalendar  = "CRASH_CALENDAR" // clock of the workflows; unset: the real one
	envBuild     = "CRASH_BUILD"    // build of a versioned worker; unset: without versioning
	envTemporal  = "CRASH_TEMPORAL"
	envNamespace = "CRASH_NAMESPACE"
	envRounds    = "CRASH_ROUNDS" // interval of the observer's rounds
	envWorld     = "CRASH_WORLD"
	envOffers    = "CRASH_OFFERS"
	envGroups    = "CRASH_GROUPS"
	envListen    = "CRASH_LISTEN"

	roleWorker = "worker"
	roleServer = "grpcserver"
)

func TestMain(m *testing.M) {
	if os.Getenv(envRole) == "" {
		os.Exit(m.Run())
	}
	go func() { // the child ends when its parent ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Fprintln(os.Stderr, child(ctx))
	os.Exit(1) // a child ends only by a signal
}

// child runs until it is killed or receives a signal to end.
func child(ctx context.Context) error {
	asks := &asker{role: os.Getenv(envRole), parent: os.Getenv(envParent)}
	options := client.Options{HostPort: os.Getenv(envTemporal), Namespace: os.Getenv(envNamespace),
		Logger: devserver.Quiet()}
	if asks.parent != "" {
		options.ConnectionOptions.DialOptions = []grpc.DialOption{grpc.WithChainUnaryInterceptor(asks.call)}
	}
	if text := os.Getenv(envCalendar); text != "" {
		days, err := parseCalendar(text)
		if err != nil {
			return err
		}
		options.Interceptors = []interceptor.ClientInterceptor{days}
	}
	t, err := client.NewLazyClient(options)
	if err != nil {
		return err
	}
	if asks.role == roleServer {
		return serve(ctx, t)
	}
	world, err := sim.Open(os.Getenv(envWorld))
	if err != nil {
		return err
	}
	if asks.parent != "" {
		world.Intercept(asks.write)
	}
	offers, err := file.Open(os.Getenv(envOffers))
	if err != nil {
		return err
	}
	b := sim.New(world, sim.Options{})
	var version sdkworker.WorkerDeploymentVersion
	if build := os.Getenv(envBuild); build != "" {
		version = sdkworker.WorkerDeploymentVersion{DeploymentName: deployment, BuildID: build}
	}
	every, _ := time.ParseDuration(os.Getenv(envRounds)) // unset: a minute
	return worker.Run(ctx, worker.Options{Temporal: t, Namespace: os.Getenv(envNamespace), Backend: b,
		SearchAttributes: true, Lead: world.Lead,
		Observer: &observer.Observer{Memory: observer.File(os.Getenv(envWorld) + ".observer"), Every: every},
		Catalog:  discovery.Resolve(offers, b, discovery.Options{}), Version: version})
}

func serve(ctx context.Context, t client.Client) error {
	file, cfg, err := config.Open(os.Getenv(envGroups))
	if err != nil {
		return err
	}
	groups := &derive.Groups{}
	server, err := grpcserver.New(grpcserver.Options{Groups: flow.NewGroups(t, "", ""),
		Specs: groups.Expand(cfg.NodeGroups),
		Reload: func() (grpcserver.Settings, bool, error) {
			cfg, changed, err := file.Changed()
			return grpcserver.Settings{Specs: groups.Expand(cfg.NodeGroups), Version: file.Hash()}, changed, err
		}})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", os.Getenv(envListen))
	if err != nil {
		return err
	}
	return grpcserver.Serve(ctx, listener, server, grpcserver.ServeOptions{})
}

// asker requests the parent's permission for each side effect. If the parent kills the child, it does not answer the
// request.
type asker struct {
	role, parent string
	tasks        sync.Map // type of workflow or activity of each task from Temporal, by task token
}

// ask returns the parent's answer. When the parent has ended, the child ends.
func (a *asker) ask(when, what string) string {
	said, err := http.PostForm(a.parent, url.Values{"role": {a.role}, "when": {when}, "what": {what},
		"pid": {strconv.Itoa(os.Getpid())}})
	var text []byte
	if err == nil {
		text, err = io.ReadAll(said.Body)
		err = errors.Join(err, said.Body.Close())
	}
	if err != nil {
		slog.Error("the parent is gone", "error", err)
		os.Exit(1)
	}
	return string(text)
}

// write intercepts a change of the simulated world.
func (a *asker) write(line []byte, write func() error) error {
	effect := a.ask(before, "write "+kindsIn(line))
	err := write()
	a.ask(after, effect)
	return err
}

// kindsIn returns the kinds of objects that a line of the world's file sets. A dash precedes a kind that the line
// removes.
func kindsIn(line []byte) string {
	var r struct {
		World string
		Set   map[string]json.RawMessage
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return err.Error()
	}
	if r.World != "" {
		return "the world anew"
	}
	kinds := map[string]bool{}
	for key, value := range r.Set {
		kind, _, _ := strings.Cut(key, "/")
		if string(value) == "null" {
			kind = "-" + kind
		}
		kinds[kind] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(kinds)), " ")
}

// call intercepts a call to Temporal.
func (a *asker) call(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption) error {
	what := a.effect(req)
	if what == "" {
		err := invoke(ctx, method, req, reply, cc, opts...)
		a.learn(reply)
		return err
	}
	effect := a.ask(before, method[strings.LastIndex(method, "/")+1:]+" "+what)
	err := invoke(ctx, method, req, reply, cc, opts...)
	a.ask(after, effect)
	a.learn(reply)
	return err
}

// effect returns the name of the change that a call makes, or "" when it changes nothing.
func (a *asker) effect(req any) string {
	switch r := req.(type) {
	case interface{ GetTaskToken() []byte }: // results of tasks, and heartbeats
		of, _ := a.tasks.Load(string(r.GetTaskToken()))
		return fmt.Sprint(of)
	case *workflowservice.SignalWithStartWorkflowExecutionRequest:
		return r.GetWorkflowType().GetName() + " " + r.GetSignalName()
	case *workflowservice.StartWorkflowExecutionRequest:
		return r.GetWorkflowType().GetName()
	case *workflowservice.SignalWorkflowExecutionRequest:
		return r.GetSignalName()
	case *workflowservice.UpdateWorkflowExecutionRequest:
		return r.GetRequest().GetInput().GetName()
	case *workflowservice.ExecuteMultiOperationRequest, *workflowservice.TerminateWorkflowExecutionRequest,
		*workflowservice.RequestCancelWorkflowExecutionRequest, *workflowservice.CreateScheduleRequest:
		return "asked"
	}
	return ""
}

// learn records the type of each task in a reply.
func (a *asker) learn(reply any) {
	switch r := reply.(type) {
	case *workflowservice.PollWorkflowTaskQueueResponse:
		a.tasks.Store(string(r.GetTaskToken()), r.GetWorkflowType().GetName())
	case *workflowservice.PollActivityTaskQueueResponse:
		a.tasks.Store(string(r.GetTaskToken()), r.GetActivityType().GetName())
	case *workflowservice.RespondWorkflowTaskCompletedResponse:
		a.learn(r.GetWorkflowTask())
		for _, eager := range r.GetActivityTasks() {
			a.learn(eager)
		}
	}
}
