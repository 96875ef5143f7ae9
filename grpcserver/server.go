package grpcserver

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Options are what a Server is made of.
type Options struct {
	// Groups is the port to the durable node groups. Required.
	Groups Groups
	// Specs are the configured node groups, at least one, with unique ids. They are fixed for the server's life: a changed
	// config is a restart, because CA asks for min and max of ids it has seen and caches templates by id.
	Specs []fleet.GroupSpec
	// Logger is where the server logs; nil means slog.Default().
	Logger *slog.Logger
}

// Server implements CA's CloudProvider service. Make it with New, load its view with Start or KeepWarm, serve it with Serve.
// All its methods are safe for concurrent use.
type Server struct {
	protos.UnimplementedCloudProviderServer

	groups    Groups
	log       *slog.Logger
	list      []*group // in the order of the config
	byID      map[string]*group
	templates map[string]*protos.NodeGroupTemplateNodeInfoResponse
	freshAt   atomic.Pointer[time.Time] // when the last good refresh began; nil before the first
}

var _ protos.CloudProviderServer = (*Server)(nil)

// New makes a Server. It calls nothing yet.
func New(o Options) (*Server, error) {
	if o.Groups == nil {
		return nil, errors.New("make grpc server: Groups is missing")
	}
	if len(o.Specs) == 0 {
		return nil, errors.New("make grpc server: no node group is configured")
	}
	s := &Server{
		groups:    o.Groups,
		log:       o.Logger,
		byID:      make(map[string]*group, len(o.Specs)),
		templates: make(map[string]*protos.NodeGroupTemplateNodeInfoResponse, len(o.Specs)),
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	for _, spec := range o.Specs {
		if s.byID[spec.ID] != nil {
			return nil, fmt.Errorf("make grpc server: node group %q is configured twice", spec.ID)
		}
		template, err := templateResponse(spec)
		if err != nil {
			return nil, fmt.Errorf("make grpc server: node group %q: %w", spec.ID, err)
		}
		g := newGroup(spec)
		s.list = append(s.list, g)
		s.byID[spec.ID] = g
		s.templates[spec.ID] = template
	}
	return s, nil
}

// group finds a configured group; NotFound for any other id.
func (s *Server) group(id string) (*group, error) {
	if g := s.byID[id]; g != nil {
		return g, nil
	}
	return nil, status.Errorf(codes.NotFound, "node group %q is not configured here", id)
}
