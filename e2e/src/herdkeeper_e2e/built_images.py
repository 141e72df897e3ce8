"""Images that this checkout builds, of which scenarios start pods of their own."""

from herdkeeper.api.default_images import SHIPPED_IMAGES, VERSION

OPERATOR = f"herdkeeper/operator:{VERSION}"
ZOOKEEPER = SHIPPED_IMAGES.zookeeper
BOOKKEEPER = SHIPPED_IMAGES.bookkeeper
HERDDB = SHIPPED_IMAGES.herddb
SPARK = SHIPPED_IMAGES.spark
