package serve

import (
	"crypto/x509"
	"encoding/pem"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/registry"
)

// ObserveCertificate registers a metric with the expiry of the certificate in the file. The file is read at each
// scrape. If it cannot be read, the value is 0, so that an alert on an expired certificate fires in this case, too.
func (o *Monitor) ObserveCertificate(file string) {
	o.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: registry.Namespace, Name: "tls_certificate_expiry_timestamp_seconds",
		Help: "When the server's certificate expires; 0 when its file cannot be read.",
	}, func() float64 {
		chain, err := os.ReadFile(file)
		if err != nil {
			return 0
		}
		block, _ := pem.Decode(chain)
		if block == nil {
			return 0
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return 0
		}
		return float64(cert.NotAfter.Unix())
	}))
}
