package dev

import (
	"os"
	"path/filepath"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// tries returns commands that the user can run next. In the repository they are targets of make, unless a path or an
// address differs from the defaults of make.
func (f devFlags) tries(temporal string, hub workflows.Hub) (demo, watch string) {
	_, err := os.Stat(temporalScript)
	here := hub.Name() == fleet.DefaultHub && temporal == connect.DefaultAddress
	if err == nil && here && f.dir == defaultDir && f.listen == defaultListen {
		return "make demo", "make watch"
	}
	demo = os.Args[0] + " demo"
	watch = os.Args[0] + " status --watch --market-file " + filepath.Join(f.dir, marketFile)
	if f.listen != defaultListen {
		demo += " --address " + f.listen
	}
	where := ""
	if temporal != connect.DefaultAddress {
		where = " --temporal-address " + temporal
	}
	if hub.Name() != fleet.DefaultHub {
		where += " --hub " + hub.Name()
	}
	return demo + where, watch + where
}
