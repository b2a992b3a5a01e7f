from tests.end_to_end.conftest import bench

__all__ = ["bench"]
