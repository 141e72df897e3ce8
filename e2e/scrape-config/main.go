// Prints the configuration that the Prometheus operator makes of the ServiceMonitors and PodMonitors on standard input (JSON documents),
// for the version of Prometheus that is its argument.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus-operator/prometheus-operator/pkg/assets"
	"github.com/prometheus-operator/prometheus-operator/pkg/prometheus"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: scrape-config VERSION   (of Prometheus, such as v3.16.0)")
		os.Exit(2)
	}
	if err := translate(os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func translate(version string, in io.Reader, out io.Writer) error {
	services, pods := map[string]*monitoring.ServiceMonitor{}, map[string]*monitoring.PodMonitor{}
	for documents := json.NewDecoder(in); documents.More(); {
		var monitor json.RawMessage
		if err := documents.Decode(&monitor); err != nil {
			return err
		}
		if err := put(monitor, services, pods); err != nil {
			return err
		}
	}
	declared := &monitoring.Prometheus{
		ObjectMeta: meta.ObjectMeta{Name: "prometheus", Namespace: "monitoring"},
		Spec: monitoring.PrometheusSpec{CommonPrometheusFields: monitoring.CommonPrometheusFields{
			Version: version, ScrapeInterval: "5s", ScrapeTimeout: "5s",
		}, EvaluationInterval: "5s"},
	}
	generator, err := prometheus.NewConfigGenerator(nil, declared)
	if err != nil {
		return err
	}
	written, err := generator.GenerateServerConfiguration(declared, services, pods, nil, nil, assets.NewTestStoreBuilder(), nil, nil, nil, nil)
	if err != nil {
		return err
	}
	_, err = out.Write(written)
	return err
}

func put(line []byte, services map[string]*monitoring.ServiceMonitor, pods map[string]*monitoring.PodMonitor) error {
	var kind meta.TypeMeta
	if err := json.Unmarshal(line, &kind); err != nil {
		return err
	}
	switch kind.Kind {
	case monitoring.ServiceMonitorsKind:
		monitor := &monitoring.ServiceMonitor{}
		services[fmt.Sprintf("%d", len(services))] = monitor
		return json.Unmarshal(line, monitor)
	case monitoring.PodMonitorsKind:
		monitor := &monitoring.PodMonitor{}
		pods[fmt.Sprintf("%d", len(pods))] = monitor
		return json.Unmarshal(line, monitor)
	default:
		return fmt.Errorf("%q is neither a ServiceMonitor nor a PodMonitor", kind.Kind)
	}
}
