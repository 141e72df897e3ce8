// Prints the configuration that the Prometheus operator makes of the ServiceMonitors and PodMonitors on standard input (a JSON document a
// line), for the version of Prometheus that is its argument.
package main

import (
	"bufio"
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
		fmt.Fprintln(os.Stderr, "usage: scrape-config VERSION   (of Prometheus, such as v2.42.0)")
		os.Exit(2)
	}
	if err := translate(os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func translate(version string, in io.Reader, out io.Writer) error {
	services, pods := map[string]*monitoring.ServiceMonitor{}, map[string]*monitoring.PodMonitor{}
	lines := bufio.NewReader(in)
	for number := 1; ; number++ {
		line, readError := lines.ReadBytes('\n')
		if readError != nil && readError != io.EOF {
			return readError
		}
		if len(line) > 0 {
			if err := put(line, services, pods); err != nil {
				return fmt.Errorf("line %d: %w", number, err)
			}
		}
		if readError == io.EOF {
			break
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
