// Enforces NetworkPolicies on one node, for tests: kube-router's firewall without its routing and its proxy, which have far more
// dependencies. A node's iptables and ipset must be on PATH. The environment variable NODE_NAME names the node.
package main

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

func main() {
	stop := make(chan struct{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	var running sync.WaitGroup
	controller := enforce(stop, &running)
	<-signals
	close(stop)
	running.Wait()
	controller.Cleanup() // the node's rules would stay as they are
}

func enforce(stop chan struct{}, running *sync.WaitGroup) *netpol.NetworkPolicyController {
	configuration := must(rest.InClusterConfig())
	client := must(kubernetes.NewForConfig(configuration))
	settings := options.NewKubeRouterConfig()
	settings.HostnameOverride = os.Getenv("NODE_NAME")
	settings.EnableIPv4 = true

	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	factory.Start(stop)
	factory.WaitForCacheSync(stop)

	tables, sets, err := netpol.NewIPTablesHandlers(settings)
	if err != nil {
		klog.Fatal(err)
	}
	controller := must(netpol.NewNetworkPolicyController(client, settings, pods, policies, namespaces, &sync.Mutex{}, tables, sets))
	handle(pods, controller.PodEventHandler)
	handle(namespaces, controller.NamespaceEventHandler)
	handle(policies, controller.NetworkPolicyEventHandler)

	heartbeats := make(chan *healthcheck.ControllerHeartbeat)
	go func() {
		for range heartbeats { // nobody asks for them here, and the controller waits until each is taken
		}
	}()
	running.Add(1)
	go controller.Run(heartbeats, stop, running)
	return controller
}

func handle(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) {
	must(informer.AddEventHandler(handler))
}

func must[T any](value T, err error) T {
	if err != nil {
		klog.Fatal(err)
	}
	return value
}
