package providers

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// maxConsumerID is the maximum length of a consumer's id, because "liqo-tenant-" and the id form the name of a
// namespace.
const maxConsumerID = 63 - len("liqo-tenant-")

// consumerFlags names the consumer to which a provider gives access.
type consumerFlags struct{ id string }

func (f *consumerFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.id, "consumer-id", "", "Liqo cluster id of the consumer; required")
}

func (f *consumerFlags) check() error { return CheckConsumer(f.id) }

// CheckConsumer returns an error if the id cannot be the id of a consumer.
func CheckConsumer(id string) error {
	if !fleet.ValidProviderID(id) || len(id) > maxConsumerID {
		return fmt.Errorf("--consumer-id %q: give the consumer's Liqo cluster id (liqoctl info shows it), at most %d "+
			"lower-case letters, digits and dashes", id, maxConsumerID)
	}
	return nil
}

var errNoServer = errors.New("--server is missing: give the address of the provider's API server as the consumer " +
	"reaches it, https://host:port")
